"use strict";
// The page says with a class that scripts run, so that controls without effect stay hidden.
document.documentElement.classList.add("scripted");
